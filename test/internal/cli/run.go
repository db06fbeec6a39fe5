package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Run is the main function of a program: it parses the flags, calls run with a context that
// is done on SIGINT and SIGTERM, and returns the exit code: 2 for invalid flags.
func Run[O any](name string, parse func(args []string, out io.Writer) (O, error), run func(context.Context, O, io.Writer) int) int {
	o, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, o, os.Stdout)
}

// NewPrinter returns a function that prints a line with the time since NewPrinter was called.
// It is safe for concurrent use.
func NewPrinter(out io.Writer) func(format string, args ...any) {
	var mu sync.Mutex
	began := time.Now()
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%7s  %s\n", time.Since(began).Round(100*time.Millisecond), fmt.Sprintf(format, args...))
	}
}

// BuildAgent builds the complete node, examples/kubelet of this checkout.
func BuildAgent(ctx context.Context, binary string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/kubeparts/kubeparts/examples/kubelet").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build examples/kubelet (run this in the repository): %w\n%s", err, out)
	}
	return nil
}
