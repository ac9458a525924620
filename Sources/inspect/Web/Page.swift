/// The page of `--web`: one document that needs nothing else.
///
/// Its script puts all that comes from the program into the page as text.
enum Page {
  static func response() -> HTTPResponse {
    var random = SystemRandomNumberGenerator()
    let nonce =
      String(random.next() as UInt64, radix: 36) + String(random.next() as UInt64, radix: 36)
    let policy = [
      "default-src 'none'", "script-src 'nonce-\(nonce)'", "style-src 'nonce-\(nonce)'",
      "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ]
    return HTTPResponse(
      status: 200, type: "text/html; charset=utf-8",
      fields: ["Content-Security-Policy": policy.joined(separator: "; ")],
      body: document(nonce: nonce))
  }

  private static func document(nonce: String) -> String {
    let script = [stateScript, listScript, detailScript, drawingScript, connectionScript]
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>inspect</title>
      <style nonce="\(nonce)">
      \(style)
      </style>
      </head>
      \(markup)
      <script nonce="\(nonce)">
      'use strict';
      \(script.joined(separator: "\n"))
      </script>
      </html>

      """
  }
}
