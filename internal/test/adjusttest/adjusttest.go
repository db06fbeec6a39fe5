// Package adjusttest tests assemblies whose users adjust the configurations of the parts.
package adjusttest

import (
	"reflect"
	"time"

	"github.com/kubeparts/kubeparts/compose"
)

// Functions returns an Adjustment for each type of configuration, which calls f with the name of the type,
// such as "podworker.Config", and the configuration.
func Functions(configs []reflect.Type, f func(name string, cfg reflect.Value)) (all []compose.Adjustment) {
	for _, c := range configs {
		all = append(all, function{c, f})
	}
	return all
}

type function struct {
	config reflect.Type
	f      func(name string, cfg reflect.Value)
}

func (f function) Config() reflect.Type { return f.config }

func (f function) Change(cfg any) error {
	f.f(f.config.String(), reflect.ValueOf(cfg).Elem())
	return nil
}

// ChangeLimit changes the first duration or number of cfg.
func ChangeLimit(_ string, cfg reflect.Value) { change(cfg) }

func change(v reflect.Value) bool {
	for i := range v.NumField() {
		field := v.Field(i)
		switch {
		case !v.Type().Field(i).IsExported():
		case field.Type() == reflect.TypeFor[time.Duration]() && field.Int() > 0:
			field.SetInt(field.Int() + int64(time.Second))
			return true
		case field.Kind() == reflect.Int:
			field.SetInt(field.Int() + 1)
			return true
		case field.Kind() == reflect.Struct && change(field):
			return true
		}
	}
	return false
}

// Dependencies returns the functions and interfaces of cfg that are not nil.
func Dependencies(cfg reflect.Value) (paths []string) {
	for i := range cfg.NumField() {
		field, name := cfg.Field(i), cfg.Type().Field(i).Name
		switch field.Kind() {
		case reflect.Func, reflect.Interface:
			if !field.IsNil() {
				paths = append(paths, name)
			}
		case reflect.Struct:
			for _, path := range Dependencies(field) {
				paths = append(paths, name+"."+path)
			}
		}
	}
	return paths
}
