package podenv

// Unexported identifiers that external tests use.
const (
	KindService = kindService
	MaxFile     = maxFile
	MaxLine     = maxLine
	MaxSize     = maxSize
)

var (
	ErrTooLarge        = errTooLarge
	ErrServicesPending = errServicesPending
	ValueInFile        = valueInFile
)
