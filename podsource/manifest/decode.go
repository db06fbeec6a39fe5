package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// MaxBytes is the largest manifest of one pod, in bytes: the API server stores no larger
// object.
const MaxBytes = yamljson.MaxBytes

// Decode decodes the one Pod in data, YAML or JSON. It applies no defaults and
// checks no values: see [Default] and [Validate].
//
// It is strict, because no API server rejects a bad manifest: an unknown or duplicate
// field, a document of another kind and a second document, which the kubelet ignores,
// are errors. An error names the line if the text is malformed, else the field and its
// value.
//
// The cost is bounded: a manifest with more than [MaxBytes], with more than 100,000
// values (aliases expanded), with a list or map of more than 10,000 items, or nested
// more than 100 levels deep is an error.
func Decode(data []byte) (*v1.Pod, error) {
	pod, _, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("manifest: decode: %w", err)
	}
	return pod, nil
}

// decode also returns the manifest as canonical JSON: keys sorted, no blanks,
// nothing added or left out.
func decode(data []byte) (*v1.Pod, []byte, error) {
	if len(data) > MaxBytes {
		return nil, nil, tooLarge(len(data))
	}
	manifest, err := toJSON(data)
	if err != nil {
		return nil, nil, err
	}
	if err := yamljson.CheckJSON(manifest, yamljson.MaxValues); err != nil {
		return nil, nil, err
	}
	if err := checkKind(manifest); err != nil {
		return nil, nil, err
	}
	// Checked first, because duplicate keys would hide values from the checks below.
	strict, err := kjson.UnmarshalStrict(manifest, new(any), kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, nil, err
	}
	if len(strict) > 0 {
		return nil, nil, oneLine(strict)
	}
	tree, err := parse(manifest)
	if err != nil {
		return nil, nil, err
	}
	if errs := checkItems(tree, nil); len(errs) > 0 {
		return nil, nil, fieldErrors(errs)
	}
	canonical, err := json.Marshal(tree)
	if err != nil {
		return nil, nil, err
	}
	if errs := checkQuantities(tree, reflect.TypeFor[v1.Pod](), nil); len(errs) > 0 {
		return nil, nil, fieldErrors(errs)
	}
	pod := new(v1.Pod)
	strict, err = kjson.UnmarshalStrict(canonical, pod)
	if err != nil {
		return nil, nil, blame(canonical, err)
	}
	if len(strict) > 0 {
		return nil, nil, oneLine(strict)
	}
	return pod, canonical, nil
}

// maxItems bounds each list and map of a manifest, since the memory that an item uses, such as a
// container, is larger than its text.
const maxItems = 10_000

// checkItems returns an error for each list and map in tree with more items.
func checkItems(tree any, path *field.Path) (errs field.ErrorList) {
	switch node := tree.(type) {
	case []any:
		if len(node) > maxItems {
			return field.ErrorList{field.TooMany(path, len(node), maxItems)}
		}
		for i, child := range node {
			if isComposite(child) {
				errs = append(errs, checkItems(child, path.Index(i))...)
			}
		}
	case map[string]any:
		if len(node) > maxItems {
			return field.ErrorList{field.TooMany(path, len(node), maxItems)}
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if isComposite(node[key]) {
				errs = append(errs, checkItems(node[key], path.Child(key))...)
			}
		}
	}
	return errs
}

func isComposite(node any) bool {
	switch node.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// parse returns the tree of a JSON value, in which numbers keep their digits.
func parse(data []byte) (tree any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&tree)
	return tree, err
}

// toJSON returns the only document of data as JSON.
func toJSON(data []byte) ([]byte, error) {
	// YAML may be UTF-16 as well; then the separators below would not be
	// found, and a second document would be overlooked.
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if looksLikeJSON := bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")); looksLikeJSON {
		err := checkJSON(data)
		if err == nil {
			return data, nil
		}
		// YAML's flow style begins with the same brace.
		if out, yamlErr := yamlToJSON(data); yamlErr == nil {
			return out, nil
		}
		return nil, err
	}
	return yamlToJSON(data)
}

// checkJSON returns nil if data is one JSON value.
func checkJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	for documents := 0; ; documents++ {
		var v json.RawMessage
		err := dec.Decode(&v)
		switch {
		case err == io.EOF && documents == 1:
			return nil
		case err == io.EOF:
			return tooMany(documents)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("json: line %d: unexpected end", lineAt(data, len(data)))
		case err != nil:
			line := lineAt(data, int(dec.InputOffset()))
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				line = lineAt(data, int(syntax.Offset))
			}
			return fmt.Errorf("json: line %d: %w", line, err)
		}
	}
}

// lineAt returns the number of the line that the byte before offset is in.
func lineAt(data []byte, offset int) int {
	offset = min(max(offset-1, 0), len(data))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

func tooLarge(size int) error {
	return fmt.Errorf("has %d bytes; the limit is %d", size, MaxBytes)
}

// checkKind returns an error if the manifest is not of a v1 Pod.
func checkKind(manifest []byte) error {
	var meta struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(manifest, &meta); err != nil {
		return fmt.Errorf("is no Pod but %s", shorten(string(bytes.TrimSpace(manifest))))
	}
	var errs field.ErrorList
	check := func(name string, got any, want string) {
		path := field.NewPath(name)
		switch {
		case got == nil || got == "":
			errs = append(errs, field.Required(path, fmt.Sprintf("must be %q", want)))
		case got != want:
			errs = append(errs, field.NotSupported(path, fmt.Sprint(got), []string{want}))
		}
	}
	check("apiVersion", meta.APIVersion, "v1")
	check("kind", meta.Kind, "Pod")
	return fieldErrors(errs)
}

// fieldErrors joins errs into one line; nil if there are none.
func fieldErrors(errs field.ErrorList) error {
	list := make([]error, len(errs))
	for i, err := range errs {
		list[i] = err
	}
	return oneLine(list)
}

// maxErrors is how many errors of one manifest are shown; a generated one can
// have a million.
const maxErrors = 20

// maxErrorText is the longest error of one manifest, in bytes: errors quote values,
// which may be as long as the manifest.
const maxErrorText = 4 << 10

// oneLine joins errs into an error of one line; nil if there are none.
func oneLine(errs []error) error {
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more", more))
	}
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = shortenTo(err.Error(), maxErrorText/len(errs))
	}
	lines := strings.Split(strings.Join(texts, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lineError{errors.Join(errs...), strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")}
}

// A lineError is an error whose text is one line of bounded length.
type lineError struct {
	error
	text string
}

func (e lineError) Error() string { return e.text }

func (e lineError) Unwrap() error { return e.error }

// shorten returns the beginning of a value that an error quotes.
func shorten(s string) string { return shortenTo(s, 64) }

func shortenTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
