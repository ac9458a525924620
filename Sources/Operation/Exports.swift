@_exported public import ReactiveStreams
