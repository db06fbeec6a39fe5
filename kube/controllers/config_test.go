package controllers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestControllersAreSelectedAsWithTheFlagOfKubeControllerManager(t *testing.T) {
	list := []component{{name: "deployment-controller", alias: "deployment"}, {name: "job-controller", alias: "job"}, {name: "taint-eviction-controller"}}
	for _, c := range []struct {
		name  string
		items []string
		want  string
		err   string
	}{
		{"nil is all", nil, "deployment-controller, job-controller, taint-eviction-controller", ""},
		{"empty is none", []string{}, "", ""},
		{"star is all", []string{"*"}, "deployment-controller, job-controller, taint-eviction-controller", ""},
		{"names, in a fixed order", []string{"job-controller", "deployment-controller"}, "deployment-controller, job-controller", ""},
		{"aliases", []string{"job"}, "job-controller", ""},
		{"all but one", []string{"*", "-job"}, "deployment-controller, taint-eviction-controller", ""},
		{"only an exclusion is none", []string{"-job"}, "", ""},
		{"unknown", []string{"jobs"}, "", `unknown controller "jobs"; want "*", or some of deployment-controller, job-controller`},
		{"an empty name is no alias", []string{""}, "", `unknown controller ""`},
		{"contradiction", []string{"job", "-job-controller"}, "", `controller "job-controller" is both selected and excluded`},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen, err := choose(c.items, list)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, names(chosen))
		})
	}
}

func TestAnInvalidConfigIsAnError(t *testing.T) {
	require.ErrorContains(t, Run(t.Context(), nil, Config{}), "REST configuration is nil")
	require.ErrorContains(t, Run(t.Context(), &rest.Config{}, Config{NodeMonitorGracePeriod: -1}), "NodeMonitorGracePeriod is negative")
	require.ErrorContains(t, Run(t.Context(), &rest.Config{}, Config{Controllers: []string{"scheduler"}}), "unknown controller")
}

// The documentation lists every controller by its name.
func TestTheDocumentationNamesTheControllers(t *testing.T) {
	doc := readFile(t, "doc.go")
	for _, c := range all {
		require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(doc, "//", "")), " "), c.name)
	}
}
