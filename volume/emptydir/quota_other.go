//go:build !linux || mips || mipsle || mips64 || mips64le || ppc64 || ppc64le

package emptydir

import (
	"errors"
	"fmt"
)

type projectQuotas struct{}

// NewProjectQuotas returns the project quotas of XFS and ext4, which this system does not have.
func NewProjectQuotas() Quotas { return projectQuotas{} }

// Assign implements Quotas.
func (projectQuotas) Assign(string) error {
	return fmt.Errorf("assign project quota: %w", errors.ErrUnsupported)
}

// Usage implements Quotas.
func (projectQuotas) Usage(string) (bytes, inodes uint64, err error) {
	return 0, 0, fmt.Errorf("read project quota: %w", errors.ErrUnsupported)
}
