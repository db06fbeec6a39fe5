package topologytest

import (
	"embed"
	"path"
	"strings"
	"testing"

	"github.com/kubeparts/kubeparts/cm/topology"
)

//go:embed testdata/*.txt
var descriptions embed.FS

// Names returns the names of the included machines, sorted.
func Names() []string {
	entries, _ := descriptions.ReadDir("testdata")
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// Description returns the description of an included machine; "" if there is none with
// the name.
func Description(name string) string {
	text, _ := descriptions.ReadFile(path.Join("testdata", name+".txt"))
	return string(text)
}

// Machine returns an included machine. It fails the test if there is none with the name.
func Machine(t testing.TB, name string) *topology.Machine {
	t.Helper()
	text := Description(name)
	if text == "" {
		t.Fatalf("topologytest: unknown machine %q; included are %q", name, Names())
	}
	return Parse(t, text)
}

// Parse returns the machine of a description. It fails the test if the description is
// invalid.
func Parse(t testing.TB, description string) *topology.Machine {
	t.Helper()
	root, err := FS(description)
	if err != nil {
		t.Fatal(err)
	}
	m, err := topology.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
