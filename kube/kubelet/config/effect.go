package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// check returns warnings about the fields and feature gates of cfg that have no effect,
// and an error about those that are refused. object has the fields that the file sets: a
// zero value has no effect, except false where true is the only accepted value.
func check(cfg *kubeletconfig.KubeletConfiguration, object map[string]any) (warnings []string, err error) {
	var errs []error
	for f := range fields {
		warning, err := f.check(cfg, f.name, isSet(object, f.name))
		errs = append(errs, err)
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return append(warnings, gateWarnings(cfg.FeatureGates)...), errors.Join(errs...)
}

// checkFlag returns a warning or an error about a field whose flag was given.
func (f field) checkFlag(cfg *kubeletconfig.KubeletConfiguration) (warning string, err error) {
	return f.check(cfg, "--"+f.flag, true)
}

func (f field) check(cfg *kubeletconfig.KubeletConfiguration, name string, set bool) (warning string, err error) {
	value, ok := f.value(cfg, false)
	if f.effect == honored || !ok || f.accepted != "" && equalsYAML(value, f.accepted) {
		return "", nil
	}
	setToFalse := value.Kind() == reflect.Bool && f.accepted != "" && set
	switch {
	case isEmpty(value) && !setToFalse:
		return "", nil
	case f.effect == refused:
		return "", fmt.Errorf("%s: %s", name, f.doc)
	}
	return fmt.Sprintf("%s has no effect: %s", name, f.doc), nil
}

// isSet reports whether a file sets a field, to any value.
func isSet(object map[string]any, field string) bool {
	name, below, nested := strings.Cut(field, ".")
	value := object[name]
	if !nested {
		return value != nil
	}
	child, _ := value.(map[string]any)
	return isSet(child, below)
}

// value returns the field of cfg. It reports false if a struct that contains the field is
// nil; fill allocates such structs.
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
		field, ok := fieldByJSONName(at.Type(), name)
		if !ok {
			return at, false
		}
		at = at.FieldByIndex(field.Index)
	}
	return at, true
}

// fill sets the field of cfg to a value in YAML, if it has its zero value and there is one.
func (f field) fill(cfg *kubeletconfig.KubeletConfiguration, text string) {
	if text == "" {
		return
	}
	if value, ok := f.value(cfg, true); ok && value.IsZero() {
		_ = yaml.Unmarshal([]byte(text), value.Addr().Interface()) // each value is tested
	}
}

// fieldByJSONName returns the field of a struct, which may be one of an embedded struct.
func fieldByJSONName(of reflect.Type, name string) (reflect.StructField, bool) {
	for i := range of.NumField() {
		f := of.Field(i)
		if jsonName(f) == name {
			return f, true
		}
		if !f.Anonymous || f.Type.Kind() != reflect.Struct {
			continue
		}
		if inner, ok := fieldByJSONName(f.Type, name); ok {
			inner.Index = append(f.Index, inner.Index...)
			return inner, true
		}
	}
	return reflect.StructField{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// isEmpty reports whether a field has its zero value, which includes the quantity "0".
func isEmpty(value reflect.Value) bool {
	zero, err := json.Marshal(reflect.Zero(value.Type()).Interface())
	text, err2 := json.Marshal(value.Interface())
	return err == nil && err2 == nil && string(text) == string(zero)
}

func equalsYAML(value reflect.Value, text string) bool {
	have, err := json.Marshal(value.Interface())
	want, err2 := yaml.YAMLToJSON([]byte(text))
	return err == nil && err2 == nil && string(have) == string(want)
}
