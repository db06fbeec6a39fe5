package fakecri

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// maxScript is the maximum length of a script in bytes.
const maxScript = 1 << 20

// readYAML decodes the only document of data into the struct that into points to, and
// does not change it if there is an error. Field names are the Go names in camel case:
// RunFor is runFor, OOM is oom. Durations are written as "90s"; other numbers may be
// quantities such as "64Mi" and "250m". Unknown fields and invalid values are errors with
// their place.
func readYAML(data []byte, into any) error {
	if len(data) > maxScript {
		return fmt.Errorf("is longer than %d bytes", maxScript)
	}
	raw, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	docs := goyaml.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		err := docs.Decode(new(skipped))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n > 0 {
			return errors.New("has more than one document")
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return err
	}
	to := reflect.ValueOf(into).Elem()
	value := reflect.New(to.Type()).Elem()
	if err := decode(tree, value, ""); err != nil {
		return err
	}
	to.Set(value)
	return nil
}

// skipped accepts and discards any YAML value.
type skipped struct{}

func (*skipped) UnmarshalYAML(func(any) error) error { return nil }

var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeCurve    = reflect.TypeFor[Curve]()
)

// decode sets to from a JSON value at a place of the script. A null changes nothing.
func decode(from any, to reflect.Value, at string) error {
	if from == nil {
		return nil
	}
	switch to.Type() {
	case typeDuration:
		return decodeDuration(from, to, at)
	case typeCurve:
		return decodeCurve(from, to, at)
	}
	switch to.Kind() {
	case reflect.Struct:
		return decodeStruct(from, to, at)
	case reflect.Map:
		return decodeMap(from, to, at)
	case reflect.Slice:
		list, ok := from.([]any)
		if !ok {
			return wrong(at, from, "a list")
		}
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, v := range list {
			if err := decode(v, to.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return decode(from, to.Elem(), at)
	case reflect.String:
		switch v := from.(type) {
		case string:
			to.SetString(v)
			return nil
		case json.Number: // the command [sleep, 5]
			to.SetString(v.String())
			return nil
		}
		return wrong(at, from, "a text")
	case reflect.Bool:
		v, ok := from.(bool)
		if !ok {
			return wrong(at, from, "true or false")
		}
		to.SetBool(v)
		return nil
	}
	return decodeNumber(from, to, at)
}

func decodeStruct(from any, to reflect.Value, at string) error {
	fields, ok := from.(map[string]any)
	if !ok {
		return wrong(at, from, "a map of fields")
	}
	known := map[string][]int{} // index by YAML name
	for _, f := range reflect.VisibleFields(to.Type()) {
		if f.IsExported() && !f.Anonymous && f.Type.Kind() != reflect.Func {
			known[camel(f.Name)] = f.Index
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		index, ok := known[name]
		if !ok {
			return fmt.Errorf("%s: there is no such field; there are %s", under(at, name), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := decode(fields[name], to.FieldByIndex(index), under(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func decodeMap(from any, to reflect.Value, at string) error {
	entries, ok := from.(map[string]any)
	if !ok {
		return wrong(at, from, "a map")
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), len(entries)))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value := reflect.New(to.Type().Elem()).Elem()
		if err := decode(entries[key], value, under(at, key)); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(key), value)
	}
	return nil
}

func decodeDuration(from any, to reflect.Value, at string) error {
	text, ok := from.(string)
	if n, isNumber := from.(json.Number); isNumber && n == "0" {
		text, ok = "0", true
	}
	d, err := time.ParseDuration(text)
	if !ok || err != nil {
		return wrong(at, from, `a duration such as "90s"`)
	}
	to.SetInt(int64(d))
	return nil
}

// decodeCurve decodes a Curve, a list of points, or one number for constant usage.
func decodeCurve(from any, to reflect.Value, at string) error {
	switch v := from.(type) {
	case map[string]any:
		return decodeStruct(v, to, at)
	case []any:
		return decode(v, to.FieldByName("Points"), at)
	}
	point := Point{}
	if err := decode(from, reflect.ValueOf(&point.Value).Elem(), at); err != nil {
		return err
	}
	to.Set(reflect.ValueOf(Curve{Points: []Point{point}}))
	return nil
}

func decodeNumber(from any, to reflect.Value, at string) error {
	var text string
	switch v := from.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		return wrong(at, from, "a number")
	}
	if isHuge(text) {
		return wrong(at, from, "a number of a size that there is")
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return wrong(at, from, `a number, such as 5, "250m" or "64Mi"`)
	}
	switch to.Kind() {
	case reflect.Float64:
		f := q.AsApproximateFloat64()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return wrong(at, from, "a number that is not so large")
		}
		to.SetFloat(f)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, ok := wholeOf(q)
		if !ok || to.OverflowInt(n) {
			return wrong(at, from, "a whole number of "+strconv.Itoa(to.Type().Bits())+" bits")
		}
		to.SetInt(n)
	case reflect.Uint64:
		n, ok := wholeOf(q)
		if !ok || n < 0 {
			return wrong(at, from, "a whole number from 0")
		}
		to.SetUint(uint64(n))
	default:
		return fmt.Errorf("%s: cannot be written in YAML", at)
	}
	return nil
}

// isHuge reports whether a number has an exponent that would be slow to parse.
func isHuge(text string) bool {
	if len(text) > 40 {
		return true
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 || i == len(text)-1 {
		return false
	}
	n, err := strconv.Atoi(text[i+1:])
	return err == nil && (n > 30 || n < -30) || errors.Is(err, strconv.ErrRange)
}

// wholeOf returns the value of a quantity and whether it is an integer of 64 bits.
func wholeOf(q resource.Quantity) (int64, bool) {
	n := q.Value() // rounded and limited to int64
	return n, resource.NewQuantity(n, q.Format).Cmp(q) == 0
}

// camel returns the YAML name of a field: its leading capitals are in lower case, except
// one that begins the next word.
func camel(name string) string {
	letters := []rune(name)
	for i, c := range letters {
		if !unicode.IsUpper(c) || i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(c)
	}
	return string(letters)
}

// under returns the place of a field or map entry below another place.
func under(at, name string) string {
	if strings.ContainsAny(name, ". []\n\"") || name == "" {
		return at + "[" + strconv.Quote(name) + "]"
	}
	if at == "" {
		return name
	}
	return at + "." + name
}

func wrong(at string, from any, want string) error {
	raw, err := json.Marshal(from)
	if err != nil || len(raw) > 60 {
		raw = fmt.Appendf(nil, "a %T", from)
		switch from.(type) {
		case map[string]any:
			raw = []byte("a map")
		case []any:
			raw = []byte("a list")
		case string:
			raw = []byte("a long text")
		}
	}
	if at == "" {
		at = "the script"
	}
	return fmt.Errorf("%s: %s is not %s", at, raw, want)
}
