//go:build !linux

package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A Tree is the cgroups of this machine.
type Tree struct{}

// New returns an error: only Linux has cgroups.
func New(Config) (*Tree, error) {
	return nil, fmt.Errorf("host: cgroups on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Delegate returns an error: only Linux has cgroups.
func Delegate() (string, error) {
	return "", fmt.Errorf("host: cgroups on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Facts returns nothing.
func (*Tree) Facts() cgroups.Facts { return cgroups.Facts{} }

// Apply returns an error.
func (*Tree) Apply(context.Context, cgroups.Name, cgroups.Resources) error {
	return errors.ErrUnsupported
}

// Read returns an error.
func (*Tree) Read(cgroups.Name) (cgroups.Resources, error) {
	return cgroups.Resources{}, errors.ErrUnsupported
}

// Children returns an error.
func (*Tree) Children(cgroups.Name) ([]cgroups.Name, error) { return nil, errors.ErrUnsupported }

// Exists returns true: that is not known.
func (*Tree) Exists(cgroups.Name) bool { return true }

// Remove returns an error.
func (*Tree) Remove(context.Context, cgroups.Name) error { return errors.ErrUnsupported }

// Stats returns an error.
func (*Tree) Stats(cgroups.Name) (cgroups.Stats, error) {
	return cgroups.Stats{}, errors.ErrUnsupported
}

// ContainerStats returns an error.
func (*Tree) ContainerStats(cgroups.Name, string) (cgroups.Stats, error) {
	return cgroups.Stats{}, errors.ErrUnsupported
}

// Dirs returns nothing.
func (*Tree) Dirs(cgroups.Name) []string { return nil }

// Inside returns an error.
func (*Tree) Inside(string, int) (bool, error) { return false, errors.ErrUnsupported }

// Strays returns an error.
func (*Tree) Strays() ([]int, error) { return nil, errors.ErrUnsupported }

// Move returns an error.
func (*Tree) Move(context.Context, cgroups.Name, ...int) error { return errors.ErrUnsupported }

// Processes returns an error.
func (*Tree) Processes(cgroups.Name) ([]int, error) { return nil, errors.ErrUnsupported }

// CheckWritable returns an error.
func (*Tree) CheckWritable(cgroups.Name) error { return errors.ErrUnsupported }
