package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// A flagSet is flags in groups, as --help and docs/configuration.md show them.
type flagSet struct {
	*flag.FlagSet
	groups  []flagGroup
	aliases map[string]string // by the name that is one, the flag that it stands for
	fields  map[string]field  // by flag, those that fieldFlags has declared
}

type flagGroup struct {
	title string
	names []string
}

func newFlagSet() *flagSet {
	fs := &flagSet{FlagSet: flag.NewFlagSet("agent", flag.ContinueOnError), aliases: map[string]string{}, fields: map[string]field{}}
	fs.SetOutput(io.Discard) // an error is told once, without the usage around it
	fs.Usage = func() {}
	return fs
}

// group declares flags below a title.
func (fs *flagSet) group(title string, declare func()) {
	var before, names []string
	fs.VisitAll(func(f *flag.Flag) { before = append(before, f.Name) })
	declare()
	fs.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(before, f.Name) && fs.aliases[f.Name] == "" {
			names = append(names, f.Name)
		}
	})
	fs.groups = append(fs.groups, flagGroup{title, names})
}

// alias gives a flag another name: that which a kubelet has for it.
func (fs *flagSet) alias(name, of string) {
	f := fs.Lookup(of)
	fs.Var(f.Value, name, f.Usage)
	fs.aliases[name] = of
}

// alsoNamed returns the other names of a flag.
func (fs *flagSet) alsoNamed(name string) (names []string) {
	for alias, of := range fs.aliases {
		if of == name {
			names = append(names, "--"+alias)
		}
	}
	slices.Sort(names)
	return names
}

// describe returns what follows the name of a flag, and what it is for.
func (fs *flagSet) describe(name string) (value, usage string) {
	f := fs.Lookup(name)
	value, usage = flag.UnquoteUsage(f)
	if value != "" {
		value = "=" + strings.ToUpper(strings.ReplaceAll(value, " ", "-"))
	}
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" && !strings.Contains(usage, "(default") {
		usage += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	if also := fs.alsoNamed(name); len(also) > 0 {
		usage += "; also " + strings.Join(also, ", ")
	}
	return value, usage
}

// help writes what the flags are for, in their groups.
func (fs *flagSet) help(w io.Writer) {
	const indent, width = "        ", 100
	for _, g := range fs.groups {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, name := range g.names {
			value, usage := fs.describe(name)
			fmt.Fprintf(w, "  --%s%s\n", name, value)
			line := indent
			for word := range strings.FieldsSeq(usage) {
				if len(line)+len(word) >= width && line != indent {
					fmt.Fprintln(w, line)
					line = indent
				}
				if line != indent {
					line += " "
				}
				line += word
			}
			fmt.Fprintln(w, line)
		}
	}
}

// fieldFlags declares the flags of the table's fields that nobody has declared yet:
// each takes what the file would have, a list with commas, a map as key=value,….
func (fs *flagSet) fieldFlags(cfg *kubeletconfig.KubeletConfiguration) {
	for _, c := range chapters {
		for _, f := range c.fields {
			if f.flag == "" || fs.Lookup(f.flag) != nil {
				continue
			}
			value, _ := f.value(cfg, true)
			usage := fmt.Sprintf("%s: %s%s", f.name, map[doing]string{warned: "changes nothing: ", refused: "refused: "}[f.does], f.what)
			if f.def != "" {
				usage += fmt.Sprintf(" (default %s)", strings.Trim(f.def, "[]"))
			}
			fs.Var(&fieldFlag{value}, f.flag, usage)
			fs.fields[f.flag] = f
		}
	}
}

// complaints returns warnings about the flags that were given and have no effect, and an
// error about those that are refused.
func (fs *flagSet) complaints(cfg *kubeletconfig.KubeletConfiguration) (warnings []string, err error) {
	var errs []error
	fs.Visit(func(f *flag.Flag) {
		warning, err := "", error(nil)
		if row, ok := fs.fields[f.Name]; ok {
			warning, err = row.complaint(cfg, "--"+f.Name, true)
		} else if ignored, ok := f.Value.(*ignoredFlag); ok {
			warning, err = ignored.complaint()
		}
		errs = append(errs, err)
		if warning != "" {
			warnings = append(warnings, warning)
		}
	})
	return warnings, errors.Join(errs...)
}

// A fieldFlag sets a field of a KubeletConfiguration.
type fieldFlag struct{ field reflect.Value }

func (f *fieldFlag) String() string { return "" }

// IsBoolFlag lets --flag mean --flag=true.
func (f *fieldFlag) IsBoolFlag() bool { return f.of().Kind() == reflect.Bool }

func (f *fieldFlag) of() reflect.Type {
	of := f.field.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

func (f *fieldFlag) Set(text string) error {
	object, err := f.object(text)
	into := reflect.New(f.field.Type())
	if err == nil {
		err = yaml.UnmarshalStrict(object, into.Interface())
	}
	if err != nil {
		return fmt.Errorf("want %s", kindOf(f.of()))
	}
	f.field.Set(into.Elem())
	return nil
}

// object is what a file would have.
func (f *fieldFlag) object(text string) ([]byte, error) {
	switch of := f.of(); of.Kind() {
	case reflect.Slice:
		return json.Marshal(strings.Split(text, ","))
	case reflect.Map:
		all := map[string]string{}
		if err := pairs(&all, "=")(text); err != nil {
			return nil, err
		}
		values := map[string]any{}
		for key, value := range all {
			if values[key] = value; of.Elem().Kind() == reflect.Bool {
				values[key] = json.RawMessage(value)
			}
		}
		return json.Marshal(values)
	case reflect.String, reflect.Struct: // a struct is a duration
		return json.Marshal(text)
	}
	return []byte(text), nil
}

// kindOf says in words what a flag takes.
func kindOf(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int32, reflect.Int64:
		return "a number"
	case reflect.Struct:
		return "a time, such as 1m30s"
	case reflect.Slice:
		return "a list, with commas"
	case reflect.Map:
		return "key=value,…"
	}
	return "a text"
}
