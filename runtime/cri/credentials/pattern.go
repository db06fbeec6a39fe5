package credentials

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// The default registry goes by two names. Credentials are mostly filed under the
// first, images are named with the second.
const (
	hubIndex  = "index.docker.io"
	hubDomain = "docker.io"
)

// A pattern is a key of a docker config, or an entry of matchImages: the hosts
// and repositories that it is for.
type pattern struct {
	labels []string // of the host, each a glob; one, with its brackets, for an IPv6 address
	port   string
	path   string // with its slash; a repository has to begin with it
	key    string // host, port and path again: what patterns are sorted by
}

// parsePattern reads a key. A scheme and the version of the registry's API at
// the begin of the path are taken off: docker login has always written
// https://index.docker.io/v1/. Globs are for the host alone, and there each is
// for one label: "*" never reaches over a dot.
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
		// user:password@host. It is not quoted, for the errors that quote end
		// up in logs.
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
		return pattern{}, fmt.Errorf("%q names no host", text)
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

// splitPort takes a port of digits off. An empty one is none.
func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.Trim(host[i+1:], "0123456789") != "" {
		return host, ""
	}
	return host[:i], host[i+1:]
}

// isIPv6 tells an address in brackets from a glob that begins with a class of
// characters.
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

// A target is an image as patterns see it: with its registry, without tag or
// digest.
type target struct {
	name   string // docker.io/library/nginx
	host   string // docker.io; with the port
	labels []string
	port   string
	path   string // /library/nginx
}

// parseImage names the registry of an image as a pull does: an image without one
// is of docker.io.
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

// matches reports whether p is for the image. The port has to be the same: none
// matches none. A path is a prefix, and not of whole names: /team is for
// /teamwork too.
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

// Match reports whether an image is matched by a pattern as credential provider
// configs and docker configs have them: "*.example.com", "registry:5000/team".
// The error names a pattern or an image that cannot be read.
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
