//go:build unix

package compare

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A normalizer replaces what differs between two runs of the same pods, such as IDs and
// times, with stable names.
type normalizer struct {
	names *strings.Replacer
	// The pods and containers of IDs, for the requests that have only those: "web" or
	// "web#1", and "web/main" or "web/main#1".
	sandboxes, containers map[string]string
}

// newNormalizer collects the IDs of a snapshot.
func newNormalizer(s *snapshot) *normalizer {
	n := &normalizer{sandboxes: map[string]string{}, containers: map[string]string{}}
	names := maps.Clone(s.Paths)
	if names == nil {
		names = map[string]string{}
	}
	add := func(text, name string) {
		if text != "" {
			names[text] = name
		}
	}
	for name, pod := range s.Pods {
		for i := range pod.History {
			version := &pod.History[i]
			if pod.Static {
				add(version.Annotations[configHash], "<uid of "+name+">")
				add(string(version.UID), "<mirror uid of "+name+">")
			} else {
				add(string(version.UID), "<uid of "+name+">")
			}
			if version.Status.PodIP != version.Status.HostIP {
				add(version.Status.PodIP, "<IP of "+name+">")
			}
		}
	}
	if s.Node != nil {
		add(string(s.Node.UID), "<uid of the node>")
	}
	for _, c := range s.Calls {
		switch c.Method {
		case "RunPodSandbox":
			pod := numbered(text(c.Request, "config", "metadata", "name"), number(c.Request, "config", "metadata", "attempt"))
			name, _, _ := strings.Cut(pod, "#")
			if s.Pods[name] == nil {
				if trimmed := strings.TrimSuffix(name, "-"+NodeName); s.Pods[trimmed] != nil {
					pod = trimmed + strings.TrimPrefix(pod, name)
					name = trimmed
				}
			}
			add(text(c.Request, "config", "metadata", "uid"), "<uid of "+name+">")
			if id := text(c.Response, "pod_sandbox_id"); id != "" {
				n.sandboxes[id] = pod
				add(id, "<sandbox of "+pod+">")
			}
		case "CreateContainer":
			pod := n.sandboxes[text(c.Request, "pod_sandbox_id")]
			pod, _, _ = strings.Cut(pod, "#")
			container := numbered(pod+"/"+text(c.Request, "config", "metadata", "name"), number(c.Request, "config", "metadata", "attempt"))
			if id := text(c.Response, "container_id"); id != "" {
				n.containers[id] = container
				add(id, "<container "+container+">")
			}
		}
	}
	var pairs []string
	// The longest first: a path may begin with another one.
	for _, old := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	}) {
		pairs = append(pairs, old, names[old])
	}
	n.names = strings.NewReplacer(pairs...)
	return n
}

// numbered returns a name with a number unless that is zero.
func numbered(name string, attempt uint64) string {
	if attempt == 0 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, attempt)
}

// patterns are replaced after the names. The order matters.
var patterns = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+`), "..<time>"}, // versions of volumes
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "<uid>"},     // of static pods that were rejected
	{regexp.MustCompile(`\b10\.231\.\d+\.\d+\b`), "<IP>"}, // of the lab's bridges
	{regexp.MustCompile(`\bkplab\d+\b`), "<bridge>"},
	{regexp.MustCompile(`\bin \d+(\.\d+)?m?s \(\d+(\.\d+)?m?s including waiting\)`), "in <duration>"},
	{regexp.MustCompile(`(\bcontainers/[^/ "]+/)[0-9a-f]{8}\b`), "$1<message>"}, // files of termination messages
	{regexp.MustCompile(`\b127\.0\.0\.1:\d{5}\b`), "127.0.0.1:<port>"},
	{regexp.MustCompile(`\b(container|exec) "[0-9a-f]{64}"`), `$1 "<id>"`},        // that was not created
	{regexp.MustCompile(`\(res: memory, q: \d+\)`), "(res: memory, q: <amount>)"}, // depends on the other pods
}

// string normalizes text.
func (n *normalizer) string(s string) string {
	s = n.names.Replace(s)
	for _, p := range patterns {
		s = p.pattern.ReplaceAllString(s, p.by)
	}
	return s
}

// value returns a copy of a JSON value with all strings and keys normalized. Numbers become
// strings, so that a snapshot that was read from a file is equal to the original.
func (n *normalizer) value(v any) any {
	switch v := v.(type) {
	case string:
		return n.string(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[n.string(key)] = n.value(one)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, n.value(one))
		}
		sortVariables(out)
		return out
	case nil:
		return nil
	case float64:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprint(v)
	}
}

// sortVariables sorts a list of environment variables, whose order is random with the kubelet.
func sortVariables(list []any) {
	for _, v := range list {
		if text(v, "key") == "" {
			return
		}
	}
	slices.SortFunc(list, func(a, b any) int { return cmp.Compare(text(a, "key"), text(b, "key")) })
}

// strings normalizes the keys and values of a map.
func (n *normalizer) strings(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[n.string(key)] = n.string(value)
	}
	return out
}

// generic replaces the names of objects by their kinds: for requests that are not made for
// each object equally often.
func generic(v any) any {
	switch v := v.(type) {
	case string:
		return objectName.ReplaceAllString(v, "<$1>")
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[key] = generic(one)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			out = append(out, generic(one))
		}
		return out
	}
	return v
}

var objectName = regexp.MustCompile(`<(uid|sandbox|container)[^>]*>`)

// field returns a field of nested maps.
func field(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func text(v any, path ...string) string {
	s, _ := field(v, path...).(string)
	return s
}

// number returns an unsigned number, which is a float64 if it was read from a file.
func number(v any, path ...string) uint64 {
	switch n := field(v, path...).(type) {
	case uint64:
		return n
	case float64:
		return uint64(n)
	}
	return 0
}
