//go:build !unix

package e2enode

import "fmt"

// The suite runs on Linux only.
var standIns map[string]func(args []string) error

const (
	unitsVariable = "E2ENODE_UNITS"
	pathVariable  = "E2ENODE_PATH"
)

func exitCode(error) int { return 2 }

func stopUnits(units string) error {
	return fmt.Errorf("stop the units of %s: not on this system", units)
}
