package cpu

type State = assignments

var (
	Hints     = cpuHints
	Place     = place
	Wants     = exclusiveCPUs
	Decode    = decode
	ErrTooFew = errTooFew
)

func (s assignments) Encode() []byte { return s.encode() }

func (m *Manager) State() State { return m.snapshot() }
