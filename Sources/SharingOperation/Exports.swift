@_exported public import Operation
