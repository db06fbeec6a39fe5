package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// A normalizer replaces the values that differ between two runs of a scenario.
type normalizer struct {
	versions  map[uint64]string         // symbols of resource versions
	uids      map[string]string         // symbols of UIDs
	generated map[string]*regexp.Regexp // generated names by prefix
	call      *Call
	made      map[string]int // symbols of the current call by kind
}

func newNormalizer() *normalizer {
	return &normalizer{versions: map[uint64]string{}, uids: map[string]string{}, generated: map[string]*regexp.Regexp{}}
}

// answer returns the normalized response to call, whose requests must be passed in order.
func (n *normalizer) answer(call *Call, res *response) *Answer {
	n.call, n.made = call, map[string]int{}
	if prefix := generateName.FindStringSubmatch(call.Body); prefix != nil {
		n.generated[prefix[1]] = regexp.MustCompile(regexp.QuoteMeta(prefix[1]) + `[a-z0-9]{5}\b`)
	}
	a := &Answer{Code: res.code, Headers: map[string]string{}}
	for _, key := range comparedHeaders {
		if value := res.header.Get(key); value != "" {
			a.Headers[key] = n.text(value)
		}
	}
	if res.body == "" {
		return a
	}
	body := n.value("", clone(res.body))
	if keep := call.directive("@keep"); len(keep) > 0 {
		body = kept(body, keep)
	}
	a.Body = viaYAML(body)
	return a
}

// viaYAML returns the value as it is read from a file.
func viaYAML(value any) any {
	var out any
	data, err := yaml.Marshal(value)
	if err == nil {
		err = yaml.Unmarshal(data, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("conformance: a value of JSON cannot be written as YAML: %v", err))
	}
	return out
}

func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			out[key] = clone(field)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	}
	return value
}

// value normalizes the value of a field.
func (n *normalizer) value(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		return n.object(v)
	case []any:
		for i := range v {
			v[i] = n.value("", v[i])
		}
		return v
	case string:
		switch key {
		case "resourceVersion":
			return n.version(v)
		case "uid":
			return n.uid(v)
		case "storageVersionHash", "continue":
			if v != "" {
				return "<" + key + ">"
			}
		}
		return n.text(v)
	}
	return value
}

func (n *normalizer) object(object map[string]any) any {
	if _, isTable := object["columnDefinitions"]; isTable {
		for _, row := range asList(object["rows"]) {
			n.ages(row)
		}
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		entries, ok := meta["managedFields"].([]any)
		slices.SortFunc(entries, func(a, b any) int { return strings.Compare(manager(a), manager(b)) })
		if ok && !slices.Contains(n.call.directive("@managed"), "fields") {
			meta["managedFields"] = managers(entries)
		}
	}
	version, isList := "", isCollection(object)
	if isList {
		meta, _ := object["metadata"].(map[string]any)
		version, _ = meta["resourceVersion"].(string)
		delete(meta, "resourceVersion")
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		object[key] = n.value(key, object[key])
	}
	if isList && version != "" {
		object["metadata"].(map[string]any)["resourceVersion"] = n.newest(version)
	}
	return object
}

// isCollection reports whether the resourceVersion of an object is the server's: it is
// a list, a table or a bookmark, not a stored object.
func isCollection(object map[string]any) bool {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return false
	}
	_, items := object["items"]
	_, rows := object["rows"]
	_, uid := meta["uid"]
	_, name := meta["name"]
	return items || rows || !uid && !name
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

var age = regexp.MustCompile(`^(\d+[smhd])+$`)

// ages replaces the ages in the cells of a row.
func (n *normalizer) ages(row any) {
	fields, _ := row.(map[string]any)
	cells := asList(fields["cells"])
	for i := range cells {
		if text, ok := cells[i].(string); ok && age.MatchString(text) {
			cells[i] = "<age>"
		}
	}
}

// managers summarizes managedFields. Their order depends on the time, in seconds.
func managers(entries []any) any {
	var out []string
	for _, entry := range entries {
		out = append(out, manager(entry))
	}
	return strings.Join(out, ", ")
}

// manager summarizes an entry of managedFields: the manager, its operation and version, and
// the subresource, if any.
func manager(entry any) string {
	fields, _ := entry.(map[string]any)
	s := fmt.Sprintf("%v %v %v", fields["manager"], fields["operation"], fields["apiVersion"])
	if sub, ok := fields["subresource"]; ok {
		s += fmt.Sprintf(" %v", sub)
	}
	return s
}

// version returns the symbol of a resource version.
func (n *normalizer) version(v string) string {
	number, err := strconv.ParseUint(v, 10, 64)
	if err != nil || number == 0 {
		return v
	}
	if symbol, ok := n.versions[number]; ok {
		return symbol
	}
	symbol := n.name("version")
	for other, name := range n.versions {
		if other > number {
			symbol += ", less than " + name
			break
		}
	}
	n.versions[number] = symbol
	return symbol
}

// newest returns the symbol of the newest version that is included in a list of version v.
func (n *normalizer) newest(v string) string {
	number, err := strconv.ParseUint(v, 10, 64)
	if err != nil || number == 0 {
		return v
	}
	symbol, best := "<version>", uint64(0)
	for other, name := range n.versions {
		if other <= number && other > best {
			symbol, best = "at least "+name, other
		}
	}
	return symbol
}

func (n *normalizer) uid(v string) string {
	if v == "" {
		return v
	}
	if _, ok := n.uids[v]; !ok {
		n.uids[v] = n.name("uid")
	}
	return n.uids[v]
}

// name returns a new symbol of the current call.
func (n *normalizer) name(kind string) string {
	n.made[kind]++
	if i := n.made[kind]; i > 1 {
		return fmt.Sprintf("<%s %d of %s>", kind, i, n.call.Name)
	}
	return fmt.Sprintf("<%s of %s>", kind, n.call.Name)
}

var (
	instant        = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	currentVersion = regexp.MustCompile(`(current: |resource version: \d+ \(|in record \(|\\?"resourceVersion\\?":\\?")\d+`)
	generateName   = regexp.MustCompile(`"generateName":"([^"]+)"`)
)

// text normalizes a string.
func (n *normalizer) text(v string) string {
	v = instant.ReplaceAllStringFunc(v, func(v string) string {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil || time.Since(t).Abs() > time.Hour {
			return v
		}
		if strings.Contains(v, ".") {
			return "<time in microseconds>"
		}
		return "<time>"
	})
	for prefix, name := range n.generated {
		v = name.ReplaceAllString(v, prefix+"<generated>")
	}
	for raw, symbol := range n.uids {
		v = strings.ReplaceAll(v, raw, symbol)
	}
	return currentVersion.ReplaceAllString(v, "${1}<version>")
}

// kept returns only the fields at the paths. A path continues in each item of a list; the
// part (name=x) selects the items whose field has the value.
func kept(value any, paths []string) any {
	out := map[string]any{}
	for _, path := range paths {
		out[path] = at(value, steps.FindAllString(path, -1))
	}
	return out
}

var (
	steps    = regexp.MustCompile(`\([^)]*\)|[^.]+`)
	selector = regexp.MustCompile(`^\((\w+)=(.*)\)$`)
)

func at(value any, path []string) any {
	if len(path) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		return at(v[path[0]], path[1:])
	case []any:
		choose := selector.FindStringSubmatch(path[0])
		rest := path
		if choose != nil {
			rest = path[1:]
		}
		out := []any{}
		for _, item := range v {
			fields, _ := item.(map[string]any)
			if choose == nil || fmt.Sprint(fields[choose[1]]) == choose[2] {
				out = append(out, at(item, rest))
			}
		}
		return out
	}
	return nil
}

// render returns a value in one short line.
func render(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	if len(data) > 200 {
		return string(data[:200]) + "..."
	}
	return string(data)
}
