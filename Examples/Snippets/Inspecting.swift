// The code of the guide Inspecting: the build compiles it, and a test compares it with the guide.

import Operation

// snippet: serve
func serve(_ client: OperationClient) -> OperationInspector? {
  do throws(OperationInspectorError) {
    return try client.serveInspector()
  } catch {
    print("This program cannot be inspected:", error)
    return nil
  }
}
// end

// snippet: limits
func serveCarefully(
  _ client: OperationClient, at path: String
) throws(OperationInspectorError) -> OperationInspector {
  try client.serveInspector(at: path, named: "orders", readOnly: true, valueLimit: 2_000) {
    path, description in
    if case "credentials"? = path.first { return nil }
    return description.replacing(#/token: "[^"]*"/#, with: "token: hidden")
  }
}
// end

// snippet: offline
func makeInspectableClient() -> OperationClient {
  OperationClient(defaults: OperationDefaults(networkObserver: ManualNetworkObserver()))
}
// end
