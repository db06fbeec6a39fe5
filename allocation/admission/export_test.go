package admission

var (
	ErrNoVictims = errNoVictims
	Preemptable  = preemptable
	Victims      = victims
)
