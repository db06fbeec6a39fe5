package prober

import (
	"context"
	"errors"

	"github.com/kubeparts/kubeparts/internal/podhttp"
	"github.com/kubeparts/kubeparts/runtime"
)

// TCPSocket opens a connection and closes it: that it could is success
// (prober-55). The zero value is ready for use.
type TCPSocket struct{}

// Probe implements [Handler].
func (TCPSocket) Probe(ctx context.Context, t Target) (Outcome, error) {
	action := t.Probe.TCPSocket
	if action == nil {
		return Outcome{}, errors.New("the probe has no tcpSocket")
	}
	to, err := podhttp.Address(action.Host, action.Port, t.Container, t.PodIP)
	if err != nil {
		return Outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	conn, err := Dial(ctx, "tcp", to)
	if err != nil {
		return Outcome{Result: runtime.ProbeFailure, Output: err.Error()}, nil
	}
	_ = conn.Close() // it was open, that is all that was asked
	return Outcome{Result: runtime.ProbeSuccess}, nil
}
