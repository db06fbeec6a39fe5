package logs_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubeparts/kubeparts/logs"
)

// The log of an agent has the messages of a library that logs with klog, and no line that is
// larger than the agent permits.
func Example() {
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	logger := slog.New(logs.Bounded(slog.NewTextHandler(os.Stdout, options)))
	klog.FromContext(logs.Context(context.Background(), logger)).Error(errors.New("no such file"), "Connection failed")
	logger.Info(logs.Text("image "+strings.Repeat("x", 1000)+" not found", 110))
	// Output:
	// level=DEBUG msg="Connection failed" err="no such file"
	// level=INFO msg="image xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx … (1016 bytes in all) … xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx not found"
}
