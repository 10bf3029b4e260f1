package cli

import "github.com/spf13/cobra"

// dataCommands read the folder of answers as the data set it is.
func (a *app) dataCommands() []*cobra.Command {
	return []*cobra.Command{a.scanCommand(), a.verifyCommand(), a.rebuildCommand(), a.exportCommand(), a.replayCommand(), a.sampleCommand()}
}
