package prober

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// errNoIP is the answer to a probe of a pod that has no address yet.
var errNoIP = errors.New("the pod has no IP yet")

// address returns where a probe goes: to host, or to the pod's own IP if there
// is none, as "host:port" with the brackets of IPv6 (prober-41 … prober-43,
// prober-55).
func address(host string, port intstr.IntOrString, t Target) (string, error) {
	if host == "" {
		host = t.PodIP
	}
	if host == "" {
		return "", errNoIP
	}
	n, err := portNumber(port, t.Container)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// portNumber returns the number of a port that may be given by the name that the
// container has for it, or as a number in a string (prober-42).
func portNumber(port intstr.IntOrString, c *v1.Container) (int, error) {
	n := port.IntValue() // of a string that is no number, 0
	if port.Type == intstr.String {
		named := false
		for i := range c.Ports {
			if c.Ports[i].Name == port.StrVal && !named {
				n, named = int(c.Ports[i].ContainerPort), true
			}
		}
		if _, err := strconv.Atoi(port.StrVal); err != nil && !named {
			return 0, fmt.Errorf("invalid port number: %q is neither a number nor the name of a port of container %s", port.StrVal, c.Name)
		}
	}
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", n)
	}
	return n, nil
}

// linger is how long, in seconds, the kernel keeps a probe's socket once it is
// closed. Without it thousands of probes leave a port each in TIME_WAIT, for a
// minute (prober-53).
const linger = 1

// Dial opens a connection for a probe, with a socket that doesn't stay when it
// is closed (prober-53). It is for handlers of other packages, too.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(linger) // a socket that is closed already needs none
	}
	return conn, err
}
