import FoundationEssentials

/// The keys under which a client saves values and calls.
///
/// The key of a path consists of its elements, each in a form that is the same in every process, and
/// different for different elements: `values/posts/3`, `values/Shop.CartQuery(user: 7)`.
enum StorageKey {
  /// What the keys of values begin with.
  static let values = "values/"
  /// What the keys of waiting calls begin with.
  static let calls = "calls/"

  /// Returns the key of the value on a path; `nil` if an element has no stable form.
  static func value(at path: OperationPath) -> String? { description(of: path).map { values + $0 } }

  /// Returns the key of a value under a name of its own.
  static func value(named name: String) -> String { "\(values)=\(escaped(name))" }

  /// The elements of a path, separated by slashes; `nil` if one has no stable form.
  static func description(of path: OperationPath) -> String? {
    let parts = path.compactMap { stable($0.value) }
    return parts.count == path.count ? parts.joined(separator: "/") : nil
  }

  /// Returns whether the value under a key is on a path below a prefix.
  static func isKey(_ key: String, below prefix: String) -> Bool {
    key == prefix || key.hasPrefix(prefix == values ? prefix : prefix + "/")
  }

  /// The prefixes that a key is below, as ``isKey(_:below:)`` says.
  static func prefixes(of key: String) -> [String] {
    let parts = key.indices.filter { key[$0] == "/" }.map { String(key[..<$0]) }
    return parts + (key.hasPrefix(values) ? [key, values] : [key])
  }

  /// A form of a value that is the same in every process: that of a number, a text, a truth value, an
  /// identifier, or of a structure or a case that consists of such. Otherwise `nil`.
  ///
  /// - Parameter isMember: Whether the type of what contains the value states that of the value.
  private static func stable(_ value: any Any, isMember: Bool = false) -> String? {
    // Before the casts, which would open it.
    if Mirror(reflecting: value).displayStyle == .optional { return reflected(value, isMember) }
    switch value {
    case let text as String: return stable(text)
    case let flag as Bool: return "\(flag)"
    case let number as Int: return "\(number)"
    case let number as any FixedWidthInteger: return "\(number):\(type(of: number))"
    case let number as any BinaryFloatingPoint:
      // It equals the negative zero.
      return "\(number.isZero ? "0.0" : "\(number)"):\(type(of: number))"
    case let id as UUID: return "#\(id.uuidString)"
    case let date as Date: return "\(date.timeIntervalSinceReferenceDate + 0):Date"
    case let data as Data: return "\(escaped(data.base64EncodedString())):Data"
    case let url as URL:
      // A relative URL is not equal to its absolute form.
      return "<\(escaped(url.relativeString))>" + (url.baseURL.flatMap { stable($0) } ?? "")
    case let character as Character: return "'\(escaped(String(character)))'"
    default: return reflected(value, isMember)
    }
  }

  /// A text as it is, or in quotes where it could be mistaken for something else.
  private static func stable(_ text: String) -> String {
    let isPlain = text.first?.isLetter == true && text != "true" && text != "false" && text != "nil"
    return isPlain ? escaped(text) : "\"\(escaped(text))\""
  }

  private static func escaped(_ text: String) -> String {
    text.utf8.reduce(into: "") { escaped, byte in
      let scalar = Unicode.Scalar(byte)
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_", "~", " ", "@":
        escaped.unicodeScalars.append(scalar)
      default: escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
  }

  private static func reflected(_ value: any Any, _ isMember: Bool) -> String? {
    let mirror = Mirror(reflecting: value)
    /// A form that values of several types have, with the type where nothing else states it.
    func typed(_ form: String?) -> String? {
      if isMember { return form }
      let type = String(reflecting: type(of: value))
      return type.contains("$") ? nil : form.map { "\($0):\(type)" }
    }
    switch mirror.displayStyle {
    case .optional:
      guard let child = mirror.children.first else { return typed("nil") }
      return stable(child.value, isMember: isMember).map { "\($0)?" }
    case .struct: return typeName(of: value).flatMap { named($0, mirror.children) }
    case .tuple: return named("", mirror.children)
    case .collection: return typed(list(mirror.children, sorted: false))
    case .set, .dictionary: return typed(list(mirror.children, sorted: true))
    case .enum:
      guard let type = typeName(of: value) else { return nil }
      if let child = mirror.children.first {
        return stable(child.value, isMember: true).map { "\(type).\(child.label ?? "")(\($0))" }
      }
      return caseName(of: value).map { "\(type).\($0)" }
    default: return nil
    }
  }

  /// The name of a type with its module; `nil` for a private or local one, whose name has an address, and
  /// for one that is reflected as something else than it is.
  private static func typeName(of value: any Any) -> String? {
    if value is any CustomReflectable { return nil }
    let name = String(reflecting: type(of: value))
    return name.contains("$") ? nil : name
  }

  /// The name of a case without values. A type may describe itself in another way, which a raw value
  /// goes before.
  private static func caseName(of value: any Any) -> String? {
    func raw(_ value: some RawRepresentable) -> String? { stable(value.rawValue) }
    if let value = value as? any RawRepresentable { return raw(value) }
    // Two cases could describe themselves in the same way.
    if value is any CustomStringConvertible || value is any CustomDebugStringConvertible {
      return nil
    }
    return escaped(String(describing: value))
  }

  private static func named(_ name: String, _ children: Mirror.Children) -> String? {
    let parts = children.compactMap { label, value in
      stable(value, isMember: true).map { part in label.map { "\($0): \(part)" } ?? part }
    }
    return parts.count == children.count ? "\(name)(\(parts.joined(separator: ", ")))" : nil
  }

  private static func list(_ children: Mirror.Children, sorted isSorted: Bool) -> String? {
    let parts = children.compactMap { stable($0.value, isMember: true) }
    guard parts.count == children.count else { return nil }
    return "[\((isSorted ? parts.sorted() : parts).joined(separator: ", "))]"
  }
}
