package fakecri

import (
	"context"
	"io"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func (r *Runtime) ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout []byte, stderr []byte, err error) {
	return nil, nil, unimplemented("ExecSync", "not yet")
}

func (r *Runtime) Exec(ctx context.Context, request *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return nil, unimplemented("Exec", "not yet")
}

func (r *Runtime) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return nil, unimplemented("Attach", "not yet")
}

func (r *Runtime) PortForward(ctx context.Context, request *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return nil, unimplemented("PortForward", "not yet")
}

func (r *Runtime) StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (exitCode int32, err error) {
	return 0, unimplemented("StreamExec", "not yet")
}

func (r *Runtime) StreamAttach(ctx context.Context, containerID string, s runtime.Streams) error {
	return unimplemented("StreamAttach", "not yet")
}

func (r *Runtime) StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	return unimplemented("StreamPortForward", "not yet")
}
