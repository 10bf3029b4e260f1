package cli

import "github.com/spf13/cobra"

// The groups are the order in which help lists the commands.

func (a *app) workCommands() []*cobra.Command {
	return []*cobra.Command{a.initCommand(), a.runCommand(), a.respondCommand(), a.mcpCommand(), a.acpCommand()}
}

func (a *app) lookCommands() []*cobra.Command {
	return []*cobra.Command{a.checkCommand(), a.renderCommand(), a.showCommand(), a.graphCommand()}
}

func (a *app) controlCommands() []*cobra.Command {
	return []*cobra.Command{
		a.statusCommand(), a.pauseCommand(), a.resumeCommand(), a.stopCommand(), a.retryCommand(), a.reloadCommand(), a.approveCommand(),
	}
}

func (a *app) otherCommands() []*cobra.Command {
	return []*cobra.Command{a.modelsCommand(), a.doctorCommand(), a.benchCommand(), a.importCommand(), a.versionCommand(), a.superviseCommand()}
}
