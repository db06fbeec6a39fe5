package device

const (
	Socket    = socket
	StateFile = stateFile
)

var (
	Hints    = deviceHints
	Extended = extended
)
