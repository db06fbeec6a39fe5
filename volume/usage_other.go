//go:build !unix

package volume

import (
	"context"
	"errors"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

func diskUsage(context.Context, string) (statsapi.FsStats, error) {
	return statsapi.FsStats{}, errors.ErrUnsupported
}

func fsUsage(string) (statsapi.FsStats, error) { return statsapi.FsStats{}, errors.ErrUnsupported }
