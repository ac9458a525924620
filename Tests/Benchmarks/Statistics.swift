import Foundation

/// Summaries of several measurements.
enum Statistics {
  static func median(of values: [Double]) -> Double { quantile(0.5, of: values) }

  /// Half of the distance between the quartiles, as a fraction of the median.
  static func spread(of values: [Double]) -> Double {
    let median = median(of: values)
    guard median != 0 else { return 0 }
    return (quantile(0.75, of: values) - quantile(0.25, of: values)) / 2 / abs(median)
  }

  private static func quantile(_ fraction: Double, of values: [Double]) -> Double {
    let sorted = values.sorted()
    guard let last = sorted.last else { return 0 }
    let position = fraction * Double(sorted.count - 1)
    let index = Int(position)
    guard index + 1 < sorted.count else { return last }
    return sorted[index] + (sorted[index + 1] - sorted[index]) * (position - Double(index))
  }

  /// Returns the exponent of the power of the size that fits the costs best: the slope of their
  /// logarithms. Returns `nil` for fewer than three points.
  static func exponent(of points: [(size: Int, cost: Double)]) -> Double? {
    let points = points.filter { $0.cost > 0 }.map {
      (x: log(Double(max($0.size, 1))), y: log($0.cost))
    }
    guard points.count >= 3 else { return nil }
    let count = Double(points.count)
    let meanX = points.reduce(0) { $0 + $1.x } / count
    let meanY = points.reduce(0) { $0 + $1.y } / count
    let covariance = points.reduce(0) { $0 + ($1.x - meanX) * ($1.y - meanY) }
    let variance = points.reduce(0) { $0 + ($1.x - meanX) * ($1.x - meanX) }
    return variance > 0 ? covariance / variance : nil
  }
}
