//go:build linux || darwin

package process_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/kubeparts/kubeparts/runtime/process"
)

// TestMain gives this binary, as Supervise asks of each that uses the package,
// the second role of a supervisor; and, for tests of an agent that is killed,
// the third of an agent.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_FORGETFUL") != "" {
		forgetful()
		return
	}
	if code, ok := process.Supervise(); ok {
		os.Exit(code)
	}
	if dir := os.Getenv("TEST_AGENT_DIR"); dir != "" {
		if err := agent(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	// A supervisor built with -race would stay for a second after its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// forgetful is the main of a program that does not call Supervise.
func forgetful() {
	switch os.Getenv("TEST_FORGETFUL") {
	case "end":
		fmt.Fprintln(os.Stderr, "unknown subcommand")
	case "agent":
		_, err := process.New(process.Config{Dir: os.Getenv("TEST_FORGETFUL_DIR")})
		fmt.Fprintln(os.Stderr, err)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-ctx.Done()
	}
}
