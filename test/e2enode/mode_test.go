package e2enode

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestModesOf(t *testing.T) {
	names := []string{"Pods run", "Faults [Feature:CriProxy] stop pods", "Faults [Feature:CriProxy] [Slow]"}
	of := func(focus string) (modes []string) {
		for _, m := range modesOf(names, regexp.MustCompile(focus)) {
			modes = append(modes, m.name)
		}
		return modes
	}
	assert.Equal(t, []string{"suite", "criproxy"}, of("."))
	assert.Equal(t, []string{"suite"}, of(" Pods run$"))
	assert.Equal(t, []string{"criproxy"}, of(`\[Slow\]`))
	assert.Empty(t, of("none"))
	assert.Equal(t, modes, modesOf(nil, regexp.MustCompile("none")))
}

func TestTheModesExcludeEachOther(t *testing.T) {
	first := modes[0].filter("")
	for _, m := range modes[1:] {
		for _, label := range m.labels {
			assert.Contains(t, first, "!"+label)
		}
	}
	assert.Contains(t, first, "!Feature:CriProxy && !Feature:StandaloneMode && !FeatureGate:")
	assert.Equal(t, "(Feature:CriProxy)", modes[1].filter(""))
	assert.Equal(t, "(Feature:CriProxy) && (!Slow || Serial)", modes[1].filter("!Slow || Serial"))
	assert.Contains(t, modes[3].filter(""), "(FeatureGate:AtomicWriteVolumeUserFields || FeatureGate:ContainerStopSignals || ")
	assert.Contains(t, modes[3].args[0], "=AtomicWriteVolumeUserFields=true,ContainerStopSignals=true,")
	assert.Equal(t, "gates", modeOf("Volumes [FeatureGate:EmptyDirVolumeMode] [Feature:OffByDefault]").name)
}
