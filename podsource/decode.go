package podsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Decode reads the one Pod in data, YAML or JSON (src-14). It applies no
// defaults and checks no values: see [Default] and [Validate].
//
// It is strict, since a manifest has no other reader who would object: a field
// that does not exist, or that is there twice, is an error, and so is a
// document of another kind and a second document (the kubelet overlooks it).
// An error names the line where the text is malformed, else the field and, if
// there is one, its value.
func Decode(data []byte) (*v1.Pod, error) {
	pod, _, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("podsource: decode: %w", err)
	}
	return pod, nil
}

// decode also returns the manifest as canonical JSON: keys sorted, no blanks,
// nothing added or left out.
func decode(data []byte) (*v1.Pod, []byte, error) {
	manifest, err := toJSON(data)
	if err != nil {
		return nil, nil, err
	}
	if err := checkKind(manifest); err != nil {
		return nil, nil, err
	}
	// Looked for first, so that what follows sees each value there is.
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

// checkKind refuses what does not call itself a v1 Pod.
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

// oneLine joins errs into an error of one line; nil if there are none.
func oneLine(errs []error) error {
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more", more))
	}
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return lineError{errors.Join(errs...)}
}

// A lineError is an error in one line, as logs and status lists want it.
type lineError struct{ error }

func (e lineError) Error() string {
	lines := strings.Split(e.error.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

func (e lineError) Unwrap() error { return e.error }

// shorten keeps messages readable.
func shorten(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
