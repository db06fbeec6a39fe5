package credentials

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// The two names of the default registry. Credentials usually have the first, images the
// second.
const (
	hubIndex  = "index.docker.io"
	hubDomain = "docker.io"
)

// A pattern is a parsed key of a docker config or entry of matchImages: it matches hosts and
// repositories.
type pattern struct {
	labels []string // of the host, each a glob; an IPv6 address in brackets is one label
	port   string
	path   string // with leading slash; a prefix of repositories
	key    string // host, port and path; the sort key
}

// parsePattern parses a key. A scheme, and a registry API version at the start of the path, are
// removed: docker login stores https://index.docker.io/v1/. Globs are supported in the host
// only, and match within one label.
func parsePattern(text string) (pattern, error) {
	rest := text
	for _, scheme := range []string{"https://", "http://"} {
		if after, ok := strings.CutPrefix(rest, scheme); ok {
			rest = after
			break
		}
	}
	host, repo := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, repo = rest[:i], rest[i:]
	}
	if strings.Contains(rest, "@") {
		// It may be user:password@host, so it must not be quoted in the error.
		return pattern{}, errors.New("with an @ is not a registry")
	}
	for _, r := range rest {
		if r <= ' ' || r == 0x7f {
			return pattern{}, fmt.Errorf("%q has a space or control character", text)
		}
	}
	for _, version := range []string{"/v1/", "/v2/"} {
		if strings.HasPrefix(repo, version) {
			repo = repo[len("/v1"):]
			break
		}
	}
	if repo == "/" {
		repo = ""
	}
	p := pattern{path: repo}
	host, p.port = splitPort(host)
	switch {
	case host == "":
		return pattern{}, fmt.Errorf("%q has no host", text)
	case isIPv6(host):
		p.labels = []string{host}
	case strings.Contains(host, ":"):
		return pattern{}, fmt.Errorf("%q has a port that is not a number", text)
	default:
		if host == hubIndex {
			host = hubDomain
		}
		p.labels = strings.Split(host, ".")
		for _, label := range p.labels {
			if _, err := path.Match(label, ""); err != nil {
				return pattern{}, fmt.Errorf("%q is not a glob in %q", label, text)
			}
		}
	}
	p.key = host
	if p.port != "" {
		p.key += ":" + p.port
	}
	p.key += p.path
	return p, nil
}

// splitPort splits off a numeric port; "" if there is none.
func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.Trim(host[i+1:], "0123456789") != "" {
		return host, ""
	}
	return host[:i], host[i+1:]
}

// isIPv6 reports whether host is an IPv6 address in brackets, not a glob that begins with a
// character class.
func isIPv6(host string) bool {
	inner, ok := strings.CutPrefix(host, "[")
	if !ok {
		return false
	}
	if inner, ok = strings.CutSuffix(inner, "]"); !ok {
		return false
	}
	addr, err := netip.ParseAddr(inner)
	return err == nil && addr.Is6()
}

// A target is a normalized image reference without tag and digest, split for matching.
type target struct {
	name   string // docker.io/library/nginx
	host   string // docker.io, with port
	labels []string
	port   string
	path   string // /library/nginx
}

// parseImage parses an image reference. The default registry is docker.io.
func parseImage(image string) (target, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return target{}, fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	t := target{name: named.Name(), host: reference.Domain(named), path: "/" + reference.Path(named)}
	host, port := splitPort(t.host)
	t.port = port
	if isIPv6(host) {
		t.labels = []string{host}
	} else {
		t.labels = strings.Split(host, ".")
	}
	return t, nil
}

// matches reports whether p matches the image. The ports must be equal. The path is a prefix of
// the text: /team also matches /teamwork.
func (p pattern) matches(t target) bool {
	if p.port != t.port || len(p.labels) != len(t.labels) || !strings.HasPrefix(t.path, p.path) {
		return false
	}
	for i, label := range p.labels {
		if strings.HasPrefix(label, "[") && isIPv6(label) {
			if label != t.labels[i] {
				return false
			}
			continue
		}
		if ok, err := path.Match(label, t.labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// Match reports whether an image matches a pattern of a credential provider config or docker
// config: "*.example.com", "registry:5000/team". It returns an error if the pattern or image is
// invalid.
func Match(pattern, image string) (bool, error) {
	p, err := parsePattern(pattern)
	if err != nil {
		return false, fmt.Errorf("credentials: pattern %w", err)
	}
	t, err := parseImage(image)
	if err != nil {
		return false, fmt.Errorf("credentials: %w", err)
	}
	return p.matches(t), nil
}
