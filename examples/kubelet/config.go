package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// maxConfig bounds the file: a KubeletConfiguration has some hundred lines.
const maxConfig = 1 << 20

// readConfig returns the KubeletConfiguration of a file, YAML or JSON, and of those
// that are dropped into a directory beside it, with defaults, and warnings about those
// of its fields that nothing comes of. What the type does not have, or has twice, is
// an error. Both names may be empty, not at once.
func readConfig(path, dir string) (cfg kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	merged := map[string]any{}
	if path != "" {
		if merged, err = readObject(path); err != nil {
			return cfg, nil, fmt.Errorf("--config: %w", err)
		}
	}
	if dir != "" {
		if err := dropIn(merged, dir); err != nil {
			return cfg, nil, fmt.Errorf("--config-dir: %w", err)
		}
	}
	text, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(text, &cfg)
	}
	if err == nil {
		warnings, err = complaints(&cfg, merged)
	}
	if err != nil {
		return cfg, nil, fmt.Errorf("%s: %w", cmp.Or(path, dir), err)
	}
	defaults(&cfg)
	return cfg, warnings, nil
}

// readObject reads one file, which must be a regular one or a link to one.
func readObject(path string) (map[string]any, error) {
	f, err := untrusted.OpenFollow(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := untrusted.Read(f, maxConfig)
	if err != nil {
		return nil, err
	}
	object, err := decodeConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}

// decodeConfig returns a KubeletConfiguration as it is written.
func decodeConfig(text []byte) (map[string]any, error) {
	object, err := yamljson.Convert(string(text))
	if err != nil {
		return nil, err
	}
	var cfg kubeletconfig.KubeletConfiguration
	strict, err := kjson.UnmarshalStrict(object, &cfg)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if cfg.Kind != "KubeletConfiguration" || cfg.APIVersion != kubeletconfig.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q, kind %q: want %s, KubeletConfiguration", cfg.APIVersion, cfg.Kind, kubeletconfig.SchemeGroupVersion)
	}
	fields := map[string]any{}
	return fields, kjson.UnmarshalCaseSensitivePreserveInts(object, &fields)
}

// dropIn merges the files *.conf of a directory into a configuration, in the order of
// their names, as a kubelet does: what a file has wins over those before it, field by
// field; lists are replaced as a whole.
func dropIn(into map[string]any, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".conf" {
			continue
		}
		object, err := readObject(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		merge(into, object)
	}
	return nil
}

// merge is a JSON merge patch (RFC 7386).
func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		old, wasObject := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject && wasObject:
			merge(old, below)
		default:
			into[key] = value
		}
	}
}

// complaints returns what is to be said of the fields that are not honoured, and an
// error about those that are refused. What a file has as its type's zero value, as
// "0s", asks for nothing; but a false does where true is fine.
func complaints(cfg *kubeletconfig.KubeletConfiguration, file map[string]any) (warnings []string, err error) {
	var errs []error
	for _, c := range chapters {
		for _, f := range c.fields {
			warning, err := f.complaint(cfg, f.name, isIn(file, f.name))
			errs = append(errs, err)
			if warning != "" {
				warnings = append(warnings, warning)
			}
		}
	}
	return append(warnings, gateWarnings(cfg.FeatureGates)...), errors.Join(errs...)
}

// complaint returns a warning if the value of the field has no effect, or an error if
// it is refused. name is the field's in the file, or its flag; given reports whether it
// was set there.
func (f field) complaint(cfg *kubeletconfig.KubeletConfiguration, name string, given bool) (warning string, err error) {
	value, ok := f.value(cfg, false)
	if f.does == honoured || !ok || f.fine != "" && sameYAML(value, f.fine) {
		return "", nil
	}
	saysNo := value.Kind() == reflect.Bool && f.fine != "" && given
	switch {
	case asksForNothing(value) && !saysNo:
		return "", nil
	case f.does == refused:
		return "", fmt.Errorf("%s: %s", name, f.what)
	}
	return name + " changes nothing: " + f.what, nil
}

// isIn reports whether a file has a field, whatever its value.
func isIn(file map[string]any, field string) bool {
	name, below, deeper := strings.Cut(field, ".")
	value := file[name]
	if !deeper {
		return value != nil
	}
	object, _ := value.(map[string]any)
	return isIn(object, below)
}

// defaults sets the fields that the file left out to what the rows of the table say.
func defaults(cfg *kubeletconfig.KubeletConfiguration) {
	for _, c := range chapters {
		for _, f := range c.fields {
			if f.def == "" {
				continue
			}
			// A default that its field can't have is found by the tests.
			if value, ok := f.value(cfg, true); ok && value.IsZero() {
				_ = yaml.Unmarshal([]byte(f.def), value.Addr().Interface())
			}
		}
	}
}

// value returns the field of cfg, which reports false if it is below one that is not
// there; fill puts that there.
func (f field) value(cfg *kubeletconfig.KubeletConfiguration, fill bool) (reflect.Value, bool) {
	at := reflect.ValueOf(cfg).Elem()
	for name := range strings.SplitSeq(f.name, ".") {
		if at.Kind() == reflect.Pointer {
			if at.IsNil() && !fill {
				return at, false
			} else if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}
			at = at.Elem()
		}
		of, ok := spelled(at.Type(), name)
		if !ok {
			return at, false
		}
		at = at.FieldByIndex(of.Index)
	}
	return at, true
}

// spelled returns the field that a file spells like that.
func spelled(of reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(of) {
		if jsonName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// jsonName is how a file spells a field.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// asksForNothing reports whether a field is as if the file did not have it: also a
// quantity that is "0".
func asksForNothing(value reflect.Value) bool {
	zero, err := json.Marshal(reflect.Zero(value.Type()).Interface())
	is, err2 := json.Marshal(value.Interface())
	return err == nil && err2 == nil && string(is) == string(zero)
}

// sameYAML reports whether a field has this value.
func sameYAML(value reflect.Value, text string) bool {
	is, err := json.Marshal(value.Interface())
	want, err2 := yaml.YAMLToJSON([]byte(text))
	return err == nil && err2 == nil && string(is) == string(want)
}
