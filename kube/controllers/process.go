package controllers

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// init sets two things of the process that Kubernetes' libraries share between tests, and
// that therefore must be independent of a synctest bubble before the first one begins.
func init() {
	// kube-scheduler waits for a debug signal. The first call of signal.Notify in a process
	// starts goroutines that never stop; started in a bubble, they terminate the process.
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	signal.Stop(c)

	// The rate limit of logged errors compares the current time with that of the last error
	// of the process. Virtual time begins in 2000, so that the first error in a bubble
	// would block the controller for decades.
	runtime.ErrorHandlers = []runtime.ErrorHandler{quieter(runtime.ErrorHandlers[0])}
}

// quieter returns a handler that calls log, except for the errors of controllers whose caches
// do not have their own last write yet. They occur whenever a watch event of an earlier write
// is received first, and are followed by a retry.
func quieter(log runtime.ErrorHandler) runtime.ErrorHandler {
	return func(ctx context.Context, err error, msg string, keysAndValues ...any) {
		if logger := klog.FromContext(ctx); isStale(err) {
			logger.V(4).Info("Cache is stale; retrying", "err", err)
		} else {
			log(klog.NewContext(ctx, logger.WithCallDepth(1)), err, msg, keysAndValues...)
		}
	}
}

// isStale reports whether err is, or only has the text of, a consistency.ConsistencyError.
func isStale(err error) bool {
	return err != nil && strings.Contains(err.Error(), "is not as new as written version: ")
}
