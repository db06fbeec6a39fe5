//go:build !linux && !darwin

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// On other systems the package compiles, and Open returns an error: it requires
// process groups, FIFOs and signals.

var errPlatform = fmt.Errorf("not supported on %s: %w", goruntime.GOOS, errors.ErrUnsupported)

func supervise(stateDir, string) error          { return errPlatform }
func makeAlive(string) error                    { return errPlatform }
func holdAlive(string) (*os.File, error)        { return nil, errPlatform }
func isAlive(string) (bool, error)              { return false, errPlatform }
func awaitEnd(context.Context, string) error    { return errPlatform }
func signalProcess(identity, int) (bool, error) { return false, errPlatform }
func killGroup(identity) error                  { return errPlatform }
func killMarked(string)                         {}
func parentOf(int) int                          { return 0 }
func startSupervisor(_, _ []string, _, _, _ *os.File) (*os.Process, error) {
	return nil, errPlatform
}
func signalNumber(string) int { return 0 }

// ExecSync is not implemented on this system.
func (r *Runtime) ExecSync(context.Context, string, []string, time.Duration) (stdout, stderr []byte, err error) {
	return nil, nil, unimplemented("ExecSync", errPlatform.Error())
}

// StreamExec is not implemented on this system.
func (r *Runtime) StreamExec(context.Context, string, []string, runtime.Streams) (int32, error) {
	return 0, unimplemented("StreamExec", errPlatform.Error())
}
