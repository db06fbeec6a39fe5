package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Masked values begin so; in a field of bytes, in base64.
const (
	mask       = "masked:"
	maskBase64 = "bWFza2Vk"
)

// compared are the fields of requests that are compared, by method; the others depend on the
// configuration of the node, or are masked. Methods that are not listed are compared by their keys only.
var compared = map[string][]string{
	"RunPodSandbox": {"config.metadata", "config.labels", "config.portMappings", "config.hostname", "runtimeHandler"},
	"CreateContainer": {
		"podSandboxId", "config.metadata", "config.image.image", "config.labels", "config.command", "config.args", "config.workingDir",
		"config.stdin", "config.tty",
	},
	"StopContainer": {"containerId", "timeout"},
}

// ignored are fields of statuses that depend on subsystems that are not replayed.
var ignored = map[string]bool{"resources": true, "allocatedResources": true, "allocatedResourcesStatus": true, "resourceClaimStatuses": true}

// tree decodes JSON for difference.
func tree(text json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v) // nil for no text
	return v
}

// requestTree returns the compared fields of a request.
func requestTree(method string, request json.RawMessage) any {
	out, all := map[string]any{}, tree(request)
	for _, path := range compared[method] {
		v := all
		for name := range strings.SplitSeq(path, ".") {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		if v != nil {
			out[path] = v
		}
	}
	return out
}

// difference returns the path and the two values of the first difference; empty if there is none. A
// masked value is equal to any value, and times are equal if they differ by less than the tolerance.
func difference(path string, recorded, replayed any, tolerance time.Duration) string {
	switch a := recorded.(type) {
	case map[string]any:
		b, ok := replayed.(map[string]any)
		if !ok {
			break
		}
		return objectDifference(path, a, b, tolerance)
	case []any:
		b, ok := replayed.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), a[i], b[i], tolerance); d != "" {
				return d
			}
		}
		return ""
	case string:
		if strings.Contains(a, mask) || strings.HasPrefix(a, maskBase64) {
			return "" // also if there is none: termination messages are files
		}
		b, ok := replayed.(string)
		if ok && (a == b || unavailable(a) == unavailable(b) || closeTimes(a, b, tolerance) || path == ".timeout" && closeSeconds(a, b)) {
			return ""
		}
	default:
		if recorded == replayed {
			return ""
		}
	}
	return fmt.Sprintf("%s: recorded %s, replayed %s", strings.TrimPrefix(path, "."), short(recorded), short(replayed))
}

func objectDifference(path string, a, b map[string]any, tolerance time.Duration) string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if ignored[key] {
			continue
		}
		if d := difference(path+"."+key, a[key], b[key], tolerance); d != "" {
			return d
		}
	}
	return ""
}

// closeTimes reports whether two texts are times that differ by at most the tolerance and a second, to which
// the API rounds. A timeout in seconds is text as well.
func closeTimes(a, b string, tolerance time.Duration) bool {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	return errX == nil && errY == nil && x.Sub(y).Abs() <= tolerance+time.Second
}

// unavailable returns a text without the description of an error of a connection. The runtime cannot be
// reached for several reasons at once: the socket does not exist, the peer has closed the connection.
func unavailable(text string) string {
	const code = "rpc error: code = Unavailable desc = "
	before, _, found := strings.Cut(text, code)
	if !found {
		return text
	}
	return before + code
}

// closeSeconds reports whether two numbers of seconds differ by at most one. A timeout is the
// rest of a grace period, rounded to a second: it depends on how long the agent took before.
func closeSeconds(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && (x == y || x == y+1 || x == y-1)
}

// short returns a value as JSON of limited length.
func short(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}
