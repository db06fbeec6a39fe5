package cri

import (
	"context"
	"log/slog"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/logs"
)

// CgroupDriver returns the cgroup driver that a CRI runtime reports, "cgroupfs" or
// "systemd", and "" if it reports none, as runtimes without the call RuntimeConfig do.
// The logger gets a failed call at the debug level; if nil, it is not logged.
func CgroupDriver(ctx context.Context, service internalapi.RuntimeService, logger *slog.Logger) string {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	answer, err := service.RuntimeConfig(logs.Context(ctx, logger))
	if err != nil || answer.GetLinux() == nil {
		return ""
	}
	if answer.Linux.CgroupDriver == runtimeapi.CgroupDriver_CGROUPFS {
		return "cgroupfs"
	}
	return "systemd"
}
