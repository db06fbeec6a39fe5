package podenv

// Unexported identifiers that external tests use.
const (
	KindService = kindService
	MaxFile     = maxFile
	MaxSize     = maxSize
)

var (
	ErrTooLarge        = errTooLarge
	ErrServicesPending = errServicesPending
	ParseFile          = parseFile
)
