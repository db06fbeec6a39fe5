package memory

type (
	State    = checkpointState
	Nodes    = machineMemory
	Node     = nodeMemory
	Table    = memoryTable
	Assigned = assignedBlocks
)

var (
	Wants        = exclusiveMemory
	Empty        = emptyNodes
	Replay       = replay
	Decode       = decode
	ParsePolicy  = parsePolicy
	ErrTooLittle = errTooLittle
)

func (s checkpointState) Encode() []byte { return s.encode() }

func (m *Manager) State() State { return m.snapshot() }
