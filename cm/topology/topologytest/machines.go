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

// Names returns the machines that come along, in order.
func Names() []string {
	entries, _ := descriptions.ReadDir("testdata")
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// Description returns the text of a machine that comes along; "" if there is no
// such machine.
func Description(name string) string {
	text, _ := descriptions.ReadFile(path.Join("testdata", name+".txt"))
	return string(text)
}

// Machine reads a machine that comes along. The test ends if it can't.
func Machine(t testing.TB, name string) *topology.Machine {
	t.Helper()
	text := Description(name)
	if text == "" {
		t.Fatalf("topologytest: no machine is called %q; there are %q", name, Names())
	}
	return Parse(t, text)
}

// Parse reads a machine from its description. The test ends if it can't.
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
