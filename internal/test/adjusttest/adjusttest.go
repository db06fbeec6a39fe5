// Package adjusttest tests assemblies whose users adjust the configurations of the parts.
package adjusttest

import (
	"reflect"
	"time"
)

// Functions returns an A whose fields, func(*C) or func(*C) error, call f with their name and
// the configuration.
func Functions[A any](f func(name string, cfg reflect.Value)) (all A) {
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		name, typ := v.Type().Field(i).Name, v.Field(i).Type()
		v.Field(i).Set(reflect.MakeFunc(typ, func(args []reflect.Value) (out []reflect.Value) {
			f(name, args[0].Elem())
			for i := range typ.NumOut() {
				out = append(out, reflect.Zero(typ.Out(i)))
			}
			return out
		}))
	}
	return all
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
