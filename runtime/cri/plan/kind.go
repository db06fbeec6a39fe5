package plan

import "fmt"

// Kind is the list of the pod spec that a container is in.
type Kind int

// The kinds. The zero value is Regular.
const (
	Regular Kind = iota
	Init
	Ephemeral
)

// String returns the kind as people say it: "init container".
func (k Kind) String() string {
	switch k {
	case Ephemeral:
		return "ephemeral container"
	case Init:
		return "init container"
	default:
		return "container"
	}
}

// MarshalText returns the kind in a word, as JSON has it: "regular", "init" or
// "ephemeral".
func (k Kind) MarshalText() ([]byte, error) {
	switch k {
	case Ephemeral:
		return []byte("ephemeral"), nil
	case Init:
		return []byte("init"), nil
	default:
		return []byte("regular"), nil
	}
}

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(text []byte) error {
	switch string(text) {
	case "regular":
		*k = Regular
	case "init":
		*k = Init
	case "ephemeral":
		*k = Ephemeral
	default:
		return fmt.Errorf("plan: unknown kind of container %q", text)
	}
	return nil
}
