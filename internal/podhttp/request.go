package podhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ErrNoIP reports that a request is for the pod's own address and the pod has
// none.
var ErrNoIP = errors.New("the pod has no IP yet")

// Address returns the address to connect to as "host:port", with brackets around
// an IPv6 address. An empty host means podIP. The port may be the name of a port
// of c. It returns ErrNoIP if host and podIP are empty.
func Address(host string, port intstr.IntOrString, c *v1.Container, podIP string) (string, error) {
	if host == "" {
		host = podIP
	}
	if host == "" {
		return "", ErrNoIP
	}
	if strings.ContainsAny(host, "[]") { // reserved for IPv6 addresses, to which they are added here
		return "", fmt.Errorf("invalid host: %q", host)
	}
	n, err := portNumber(port, c)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// portNumber resolves a port that is a number, the name of a port of the
// container, or a number in a string.
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

// NewRequest returns the GET request of an action of container c. UserAgent is the
// default of the header User-Agent. It returns ErrNoIP if the action has no host
// and podIP is empty.
func NewRequest(ctx context.Context, action *v1.HTTPGetAction, c *v1.Container, podIP, userAgent string) (*http.Request, error) {
	to, err := Address(action.Host, action.Port, c, podIP)
	if err != nil {
		return nil, err
	}
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	u := url.URL{Scheme: scheme, Host: to, Path: action.Path}
	// A path may have a query. One that cannot be parsed is used unchanged, and so
	// is one with a colon, as in mailto:me, which would parse as an opaque URL.
	if parsed, err := url.Parse(action.Path); err == nil && parsed.Opaque == "" {
		u.Path, u.RawPath, u.RawQuery = parsed.Path, parsed.RawPath, parsed.RawQuery
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header, request.Host = headers(action.HTTPHeaders, userAgent)
	return request, nil
}

// headers returns the headers of a request, and its Host, which is empty if it is
// that of the address. An empty Accept removes the default.
func headers(given []v1.HTTPHeader, userAgent string) (http.Header, string) {
	h := http.Header{}
	for _, header := range given {
		h.Add(header.Name, header.Value)
	}
	host := h.Get("Host")
	h.Del("Host")
	if _, ok := h["User-Agent"]; !ok {
		h.Set("User-Agent", userAgent)
	}
	if accept, ok := h["Accept"]; !ok {
		h.Set("Accept", "*/*")
	} else if accept[0] == "" {
		h.Del("Accept")
	}
	return h, host
}

// Protocols returns the versions of HTTP that an action specifies, nil if it
// specifies none. HTTP/2 is used without TLS and without negotiation (KEP-5999).
func Protocols(action *v1.HTTPGetAction) (*http.Protocols, error) {
	if action.Protocol == nil {
		return nil, nil
	}
	p := new(http.Protocols)
	switch {
	case *action.Protocol == v1.HTTPProtocolHTTP1:
		p.SetHTTP1(true)
	case *action.Protocol != v1.HTTPProtocolHTTP2:
		return nil, fmt.Errorf("unknown protocol %q", *action.Protocol)
	case strings.EqualFold(string(action.Scheme), string(v1.URISchemeHTTPS)):
		return nil, fmt.Errorf("protocol %s does not go with scheme %s", *action.Protocol, action.Scheme)
	default:
		p.SetUnencryptedHTTP2(true)
	}
	return p, nil
}
