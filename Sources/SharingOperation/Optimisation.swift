public import Observation
public import Synchronization

// The optimiser uses in other modules only code whose imports are public, and a public import needs a
// use. Without these, the benchmarks of reads through @SharedQuery are over their limits.
@usableFromInline typealias OptimisedMutex = Mutex<Int>
@usableFromInline typealias OptimisedRegistrar = ObservationRegistrar
