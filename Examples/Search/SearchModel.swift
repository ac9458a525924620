import SharingOperation

/// A text, and the places that match it: those for the text before, until the new ones arrive.
final class SearchModel {
  @SharedQuery<PlacesQuery.State> var places
  private(set) var text = ""

  init(client: OperationClient) {
    // Unbacked until there is a text; requests are bound in the client.
    _places = OperationClient.withCurrent(client) { SharedQuery() }
  }

  /// Changes the text. The search begins when the typing has paused.
  func change(to text: String) {
    self.text = text
    $places.bind(
      to: text.isEmpty ? nil : PlacesQuery(text: text), debouncedBy: .milliseconds(200),
      keepingPrevious: true)
  }

  /// The lines to display: the text, and the places.
  var lines: [String] {
    let places = places ?? []
    let isOld = $places.isPrevious || $places.isLoading
    let note = isOld ? " …" : places.isEmpty && $places.isBacked ? " (none)" : ""
    return ["search: \(text)\(note)"] + places.prefix(8).map { "  \($0)" }
  }
}
