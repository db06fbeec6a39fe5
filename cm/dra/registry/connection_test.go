package registry

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dra-10
func TestVersionsOfPlugins(t *testing.T) {
	for name, tt := range map[string]struct {
		supported []string
		want      services
		err       string
	}{
		"both":     {[]string{"v1beta1.DRAPlugin", "v1.DRAPlugin"}, services{dra: "v1.DRAPlugin"}, ""},
		"old":      {[]string{"v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"}, services{"v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"}, ""},
		"health":   {[]string{"v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}, services{"v1.DRAPlugin", "v1.DRAResourceHealth"}, ""},
		"future":   {[]string{"v2.DRAPlugin"}, services{}, "want v1.DRAPlugin or v1beta1.DRAPlugin"},
		"no DRA":   {[]string{"v1.DRAResourceHealth"}, services{}, "want v1.DRAPlugin"},
		"ancient":  {[]string{"1.0.0"}, services{}, "want v1.DRAPlugin"},
		"no names": {nil, services{}, "want v1.DRAPlugin"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseServices(tt.supported)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}
