package prober

import (
	"context"
	"errors"

	"github.com/kubeparts/kubeparts/internal/podhttp"
	"github.com/kubeparts/kubeparts/runtime"
)

// TCPSocket opens a connection and closes it; a connection is a success. The zero value is
// ready to use.
type TCPSocket struct{}

// Probe implements [Handler].
func (TCPSocket) Probe(ctx context.Context, t Target) (Outcome, error) {
	action := t.Probe.TCPSocket
	if action == nil {
		return Outcome{}, errors.New("probe has no tcpSocket")
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
	_ = conn.Close()
	return Outcome{Result: runtime.ProbeSuccess}, nil
}
