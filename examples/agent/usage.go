package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/stats"
)

// usageOf tells what the node and its pods use, by what the runtime knows, to who
// decides about evictions: anew each time that it is asked, so that nobody is
// evicted for what he used ten seconds ago.
func usageOf(opts options, rt connected, logger *slog.Logger) (*stats.Collector, error) {
	return stats.New(stats.Config{
		NodeName: opts.nodeName, Runtime: rt, Root: os.DirFS("/"), NodeDir: opts.root, Logger: logger, MaxAge: time.Second,
		LogDir: func(namespace, name string, uid types.UID) string {
			return filepath.Join(opts.logs, namespace+"_"+name+"_"+string(uid))
		},
	})
}
