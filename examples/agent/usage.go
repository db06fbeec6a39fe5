package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/stats"
)

// usageOf tells what the node and its pods use, by what the runtime knows.
func usageOf(opts options, rt connected, logger *slog.Logger) (*stats.Collector, error) {
	return stats.New(stats.Config{
		NodeName: opts.nodeName, Runtime: rt, Root: os.DirFS("/"), NodeDir: opts.root, Logger: logger,
		LogDir: func(namespace, name string, uid types.UID) string {
			return filepath.Join(opts.logs, namespace+"_"+name+"_"+string(uid))
		},
	})
}
