package plan

import "fmt"

// Kind is the list of the pod spec that contains a container.
type Kind int

// The kinds. The zero value is Regular.
const (
	Regular Kind = iota
	Init
	Ephemeral
)

// String returns "container", "init container" or "ephemeral container".
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

// MarshalText returns "regular", "init" or "ephemeral".
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

// UnmarshalText parses the results of MarshalText.
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
