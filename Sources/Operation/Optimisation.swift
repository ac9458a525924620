public import Synchronization

// The optimiser uses in other modules only code whose imports are public, and a public import needs a
// use. Without this one, all benchmarks of stores are over their limits.
@usableFromInline typealias OptimisedMutex = Mutex<Int>
