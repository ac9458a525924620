extension MutationRequest {
  /// Remembers `length` attempts at most; 100 unless said.
  ///
  /// - Parameter length: How many; a negative number is reported and taken as zero.
  public func maxHistory(
    length: Int
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    let length = length.checkedCount(for: "The history length of \(Self.self)")
    return settings { $0.maxHistory = length }
  }
}
