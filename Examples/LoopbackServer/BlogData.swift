import Foundation

/// The content of a small blog, which is always the same for the same seed.
public struct BlogData: Sendable, Equatable {
  /// The authors, with identifiers from 1.
  public var authors: [BlogServer.Author]
  /// The posts, with identifiers from 1.
  public var posts: [BlogServer.Post]
  /// The comments of all posts, with identifiers from 1.
  public var comments: [BlogServer.Comment]

  /// Creates a blog from a seed, with up to five comments for each post.
  public init(seed: UInt64 = 1, postCount: Int = 60) {
    var generator = SeededGenerator(seed: seed)
    authors = Self.makeAuthors()
    posts = []
    comments = []
    for id in 0..<postCount {
      let author = generator.pick(authors)
      posts.append(Self.makePost(id: id + 1, authorId: author.id, using: &generator))
      for _ in 0..<Int.random(in: 0...5, using: &generator) {
        let id = comments.count + 1
        comments.append(Self.makeComment(id: id, postId: posts.count, using: &generator))
      }
    }
  }

  private static func makeAuthors() -> [BlogServer.Author] {
    BlogTexts.authors.enumerated().map { index, author in
      BlogServer.Author(id: index + 1, name: author.0, bio: author.1)
    }
  }

  private static func makePost(
    id: Int, authorId: Int, using generator: inout SeededGenerator
  ) -> BlogServer.Post {
    let subject = generator.pick(BlogTexts.subjects)
    let title = generator.pick(BlogTexts.titles).replacing("%", with: subject)
    let opening = generator.pick(BlogTexts.openings).replacing("%", with: subject)
    let rest = BlogTexts.sentences.shuffled(using: &generator).prefix(3)
    let body = ([opening] + rest).joined(separator: " ")
    return BlogServer.Post(id: id, title: title, body: body, authorId: authorId)
  }

  private static func makeComment(
    id: Int, postId: Int, using generator: inout SeededGenerator
  ) -> BlogServer.Comment {
    BlogServer.Comment(
      id: id, postId: postId, author: generator.pick(BlogTexts.readers),
      text: generator.pick(BlogTexts.comments))
  }
}

/// A generator that returns the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Returns a random element of a list that is not empty.
  mutating func pick<Element>(_ list: [Element]) -> Element {
    list[Int.random(in: list.indices, using: &self)]
  }
}

/// The texts of the posts.
enum BlogTexts {
  static let authors = [
    ("Mira Solberg", "Repairs old radios and writes about what they taught her."),
    ("Tomas Okafor", "Bakes at night, bikes by day, and measures both."),
    ("Lena Aydin", "Keeps bees on a roof in the middle of the city."),
    ("Jonas Verhoeven", "Maps forgotten footpaths with a notebook and a dog."),
    ("Priya Raman", "Teaches physics and collects bad coffee stories."),
    ("Caleb Whitford", "Builds small boats slowly and small programs quickly."),
  ]

  static let subjects = [
    "a balcony garden", "sourdough bread", "a second-hand bicycle", "an old radio",
    "a wooden canoe", "night trains", "fountain pens", "a weather station", "home networks",
    "a rooftop beehive", "mechanical clocks", "a paper notebook",
  ]

  static let titles = [
    "What I learned from %", "A short guide to %", "The trouble with %", "In praise of %",
    "One year with %", "Notes on %", "How not to begin with %",
  ]

  static let openings = [
    "When I first thought about %, I expected it to take a weekend.",
    "Nobody warned me how much patience goes into %.",
    "A neighbour asked me about % last week, and I could not stop talking.",
    "I have made every mistake there is with %, some of them twice.",
  ]

  static let sentences = [
    "The cheap tool broke on the first day, and the borrowed one still works.",
    "Write down what you change, because you will not remember it in March.",
    "Most of the advice online is right, but in the wrong order.",
    "It rained for three days, which turned out to be useful.",
    "My first attempt looked fine from a distance.",
    "Measuring it twice saved me a trip across town.",
    "There is a point where more effort only makes it worse.",
    "The best part is how quiet the mornings become.",
  ]

  static let readers = ["Ana", "Bram", "Chidi", "Dora", "Emil", "Farah", "Gus", "Hana"]

  static let comments = [
    "I tried this on Sunday and it worked.", "The third sentence made my day.",
    "Do you have a photo of the finished thing?", "My grandfather did it the same way.",
    "I disagree about the tools, but thank you for this.", "Please write a second part.",
    "This would have saved me a whole month.", "How long did it take in the end?",
  ]
}
